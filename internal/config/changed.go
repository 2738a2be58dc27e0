package config

import "reflect"

// Changed names the keys whose values differ between two configurations, as dotted paths in the order of the reference. A list or a
// map is one key: issuers, not issuers[0].id. What the files hold that a configuration names is not looked at.
func Changed[T any](before, after T) []string {
	var keys []string
	changed(reflect.ValueOf(&before).Elem(), reflect.ValueOf(&after).Elem(), "", &keys)
	return keys
}

func changed(before, after reflect.Value, path string, keys *[]string) {
	if before.Kind() != reflect.Struct || isLeaf(before.Type()) {
		if !equal(before, after) {
			*keys = append(*keys, path)
		}
		return
	}
	for i := range before.NumField() {
		if key := keyOf(before.Type().Field(i)); key != "" {
			changed(before.Field(i), after.Field(i), join(path, key), keys)
		}
	}
}

// equal takes an absent list or map and an empty one for the same, since to a reader of the configuration they are.
func equal(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Struct:
		return equalParts(a.NumField(), b.NumField(), a.Field, b.Field)
	case reflect.Slice:
		return equalParts(a.Len(), b.Len(), a.Index, b.Index)
	case reflect.Map:
		keys := a.MapKeys()
		there := func(i int) reflect.Value { return b.MapIndex(keys[i]) }
		return equalParts(a.Len(), b.Len(), func(i int) reflect.Value { return a.MapIndex(keys[i]) }, there)
	default:
		return b.IsValid() && reflect.DeepEqual(a.Interface(), b.Interface())
	}
}

func equalParts(n, m int, a, b func(int) reflect.Value) bool {
	for i := range n {
		if n != m || !b(i).IsValid() || !equal(a(i), b(i)) {
			return false
		}
	}
	return n == m
}
