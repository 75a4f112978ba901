"""The protocol as proto files, and the modules generated from them (`make proto`), which only reflection uses."""
