package lab

import "errors"

// Code says what kind of failure an Error is; it is stable and part of the HTTP API.
type Code string

// The codes of the HTTP API, with the status that each becomes.
const (
	CodeInvalid     Code = "invalid"     // 400: the request can't be understood
	CodeForbidden   Code = "forbidden"   // 403: understood, and not allowed
	CodeNotFound    Code = "not_found"   // 404: also for what belongs to another learner
	CodeConflict    Code = "conflict"    // 409: not in this state
	CodeTooLarge    Code = "too_large"   // 413: over a size limit or quota
	CodeBusy        Code = "busy"        // 429: too many at once; try again later
	CodeUnsupported Code = "unsupported" // 422: the driver lacks a capability
	CodeUnavailable Code = "unavailable" // 503: the cluster can't be reached now
	CodeInternal    Code = "internal"    // 500: our fault
)

// Error is a failure with a sentence for the person who sees it, in every
// language, and the cause for the log. People never see the cause.
type Error struct {
	Code Code
	Text Text
	Err  error // the cause; may be nil
}

func (e *Error) Error() string {
	if e.Err != nil {
		return string(e.Code) + ": " + e.Text.En + ": " + e.Err.Error()
	}
	return string(e.Code) + ": " + e.Text.En
}

func (e *Error) Unwrap() error { return e.Err }

// Fail makes an Error of a code and its sentence in Traditional Chinese and English.
func Fail(code Code, zhTW, en string) *Error {
	return &Error{Code: code, Text: Text{ZhTW: zhTW, En: en}}
}

// Because adds the cause to a copy of the error.
func (e *Error) Because(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// AsError finds the Error in err's chain; any other error becomes one with
// CodeInternal and a general sentence. It returns nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeInternal, Err: err, Text: Text{
		ZhTW: "伺服器內部發生問題，請再試一次；若持續發生，請告訴講師。",
		En:   "Something went wrong inside the server. Try again; if it keeps happening, tell your instructor.",
	}}
}
