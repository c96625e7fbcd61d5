package host

import (
	"errors"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func isConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// isEnd reports the ways in which a watch ends from time to time.
func isEnd(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
