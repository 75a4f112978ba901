"""The protocol as proto files, and the modules that are generated from them (`make proto`); only reflection uses these."""
