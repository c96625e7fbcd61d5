package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"kubistro/internal/lab"
)

// Token is the server's half of a kubeconfig token. The secret itself isn't kept.
type Token struct {
	Session string
	Learner lab.LearnerID
	Created time.Time
	Expires time.Time
}

// NewToken makes a kubeconfig token and returns its secret, the only time that
// it can be seen. CodeNotFound for an unknown session or learner.
func (s *Store) NewToken(ctx context.Context, t Token) (secret string, err error) {
	secret = rand.Text() + rand.Text() // 260 bits
	_, err = s.write.ExecContext(ctx,
		`INSERT INTO tokens (hash, session, learner, created, expires) VALUES ($1, $2, $3, $4, $5)`,
		hashOf(secret), t.Session, t.Learner, nanos(t.Created), nanos(t.Expires))
	switch {
	case isForeignKey(err):
		return "", noSession()
	case err != nil:
		return "", fmt.Errorf("add token: %w", err)
	}
	return secret, nil
}

// Token finds the token of a secret; CodeNotFound when it is unknown, revoked or expired at now.
func (s *Store) Token(ctx context.Context, secret string, now time.Time) (Token, error) {
	var t Token
	var created, expires int64
	err := s.read.QueryRowContext(ctx,
		`SELECT session, learner, created, expires FROM tokens WHERE hash = $1 AND NOT revoked AND expires > $2`,
		hashOf(secret), nanos(now)).Scan(&t.Session, &t.Learner, &created, &expires)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Token{}, lab.Fail(lab.CodeNotFound,
			"這份 kubeconfig 的權杖無效或已過期。請從實驗室頁面重新下載。",
			"The token of this kubeconfig is unknown or has expired. Download a new one from the lab page.")
	case err != nil:
		return Token{}, fmt.Errorf("read token: %w", err)
	}
	t.Created, t.Expires = fromNanos(created), fromNanos(expires)
	return t, nil
}

// RevokeTokens ends all tokens of a session at once.
func (s *Store) RevokeTokens(ctx context.Context, session string) error {
	if _, err := s.write.ExecContext(ctx, `UPDATE tokens SET revoked = TRUE WHERE session = $1`, session); err != nil {
		return fmt.Errorf("revoke tokens: %w", err)
	}
	return nil
}

// hashOf needs no salt or slow function: secrets are random and long.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
