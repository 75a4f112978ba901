// An assembly file, however empty, lets the compiler accept the functions without a body in main.go (go:linkname).
