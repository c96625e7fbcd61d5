// Package lab holds the vocabulary that all parts of Kubistro share: learners,
// sessions, events, check results, texts in two languages and the error type.
// It does no I/O and imports the standard library only.
package lab

import (
	"context"
	"strings"
)

// Lang is a language of the user interface and of the lessons, as a BCP 47 tag.
type Lang string

// The languages that every text exists in. They have equal rank.
const (
	ZhTW Lang = "zh-TW"
	En   Lang = "en"
)

// Langs lists all languages in the order in which the interface offers them.
func Langs() []Lang { return []Lang{ZhTW, En} }

// ParseLang finds the language that a BCP 47 tag or a browser's language range
// asks for; ok is false for a language that Kubistro doesn't speak.
func ParseLang(tag string) (l Lang, ok bool) {
	switch base, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-"); base {
	case "zh":
		return ZhTW, true
	case "en":
		return En, true
	}
	return "", false
}

type langKey struct{}

// WithLang tells a request's language to what works on it.
func WithLang(ctx context.Context, l Lang) context.Context {
	return context.WithValue(ctx, langKey{}, l)
}

// LangOf is the language that WithLang told; English when it told none.
func LangOf(ctx context.Context) Lang {
	if l, ok := ctx.Value(langKey{}).(Lang); ok {
		return l
	}
	return En
}

// Text is a sentence in every language.
type Text struct {
	ZhTW string `json:"zh-TW" yaml:"zh-TW"`
	En   string `json:"en" yaml:"en"`
}

// In returns the sentence in language l, English for an unknown one.
func (t Text) In(l Lang) string {
	if l == ZhTW {
		return t.ZhTW
	}
	return t.En
}

// IsZero reports whether no language has a sentence.
func (t Text) IsZero() bool { return t == Text{} }

// Missing lists the languages without a sentence.
func (t Text) Missing() []Lang {
	var out []Lang
	for _, l := range Langs() {
		if strings.TrimSpace(t.In(l)) == "" {
			out = append(out, l)
		}
	}
	return out
}
