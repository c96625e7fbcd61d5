package pantry

// Default is the pantry of this version.
func Default() *Registry {
	r := NewRegistry()
	return r
}
