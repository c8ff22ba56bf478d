package steer

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// What an agent answers has names in it that programs have chosen: of files, communicators, hosts,
// clusters. Their control characters would be commands to the terminal on which spxctl writes them,
// so they are replaced by what they are called (\x1b).

// Plain is a text without control characters.
func Plain(text string) string {
	if !strings.ContainsFunc(text, isControl) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isControl(r) {
			fmt.Fprintf(&b, `\x%02x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isControl: C0 and C1 characters, and those that change the direction of a text.
func isControl(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// makePlain makes all texts plain in what a pointer leads to: structures, lists, maps.
func makePlain(to any) { plain(reflect.ValueOf(to).Elem()) }

func plain(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(Plain(v.String()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			plain(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				plain(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // bytes are no text: JSON in its own right, say
		}
		for i := range v.Len() {
			plain(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(k))
			plain(e)
			v.SetMapIndex(k, e)
		}
	}
}
