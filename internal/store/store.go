// Package store keeps what must survive a restart of the server: learners,
// sessions, progress, quiz answers, event streams, kubeconfig tokens and
// terminal history. It owns the SQL and its migrations; it knows nothing of
// clusters, lessons or HTTP.
package store

import (
	"context"
	"encoding/json"
	"time"

	"kubistro/internal/lab"
)

// Limits of what is kept.
const (
	EventsKept  = 20_000 // newest events of a session
	HistoryKept = 500    // newest terminal lines of a session
)

// Store is the server's database. All methods are safe for concurrent use. A
// row that isn't there is a *lab.Error with CodeNotFound where a method's
// comment says so.
type Store struct{}

// Open opens the SQLite database in file path, makes it when it isn't there and
// brings its schema up to date. A file that isn't ours, is damaged, or was
// written by a newer version gives a *lab.Error that says what to do.
func Open(ctx context.Context, path string) (*Store, error) { panic("being built") }

// Close waits for running calls and closes the database.
func (s *Store) Close() error { panic("being built") }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error { panic("being built") }

// Learner is somebody with a cookie.
type Learner struct {
	ID       lab.LearnerID
	Created  time.Time
	LastSeen time.Time
	Lang     lab.Lang // empty: not chosen, the browser's is used
}

// SeeLearner notes that the learner was seen at time at, and makes the row at the first visit.
func (s *Store) SeeLearner(ctx context.Context, id lab.LearnerID, at time.Time) (Learner, error) {
	panic("being built")
}

// Learner finds a learner; CodeNotFound for an unknown one.
func (s *Store) Learner(ctx context.Context, id lab.LearnerID) (Learner, error) {
	panic("being built")
}

// SetLang keeps the language that the learner chose; CodeNotFound for an unknown learner.
func (s *Store) SetLang(ctx context.Context, id lab.LearnerID, lang lab.Lang) error {
	panic("being built")
}

// Session is a learner's work on a course, with the cluster that belongs to it.
type Session struct {
	ID      string
	Learner lab.LearnerID
	Course  string
	Cluster string // the Manager's id; empty until one was claimed
	Spec    lab.ClusterSpec
	Created time.Time
	Ended   time.Time // zero while it runs
}

// CreateSession adds a session. CodeConflict when the learner already has a
// running one of this course; CodeNotFound for an unknown learner.
func (s *Store) CreateSession(ctx context.Context, v Session) error { panic("being built") }

// Session finds a session, running or ended; CodeNotFound when there is none.
func (s *Store) Session(ctx context.Context, id string) (Session, error) { panic("being built") }

// RunningSession finds the learner's running session of a course; CodeNotFound when there is none.
func (s *Store) RunningSession(ctx context.Context, learner lab.LearnerID, course string) (Session, error) {
	panic("being built")
}

// LearnerSessions lists a learner's sessions, newest first, ended ones too.
func (s *Store) LearnerSessions(ctx context.Context, learner lab.LearnerID) ([]Session, error) {
	panic("being built")
}

// RunningSessions lists all sessions that haven't ended, oldest first: for recovery.
func (s *Store) RunningSessions(ctx context.Context) ([]Session, error) { panic("being built") }

// SetCluster notes which cluster a session has now; CodeNotFound for an unknown session.
func (s *Store) SetCluster(ctx context.Context, session, cluster string, spec lab.ClusterSpec) error {
	panic("being built")
}

// EndSession ends a session, revokes its tokens and drops its events and
// terminal history. Progress stays. Ending an ended one changes nothing.
func (s *Store) EndSession(ctx context.Context, id string, at time.Time) error {
	panic("being built")
}

// Exercise is a learner's progress in one exercise. It is kept by learner and
// course, so that it survives a new session.
type Exercise struct {
	Learner  lab.LearnerID
	Course   string
	Exercise string
	// Session, StartedAt and StartEvent tell in which session its start state was
	// set up, when, and the number of the last event before that.
	Session    string
	StartedAt  time.Time
	StartEvent uint64
	DoneAt     time.Time         // zero until all checks were met at once; never goes back
	Hints      int               // how many have been opened
	Solved     bool              // "show me" was used
	Met        []string          // checks that were met at the last look or earlier, for regressions
	Typed      map[string]string // what the learner typed, by check
}

// StartedIn reports whether the start state was set up in this session.
func (e Exercise) StartedIn(session string) bool {
	return session != "" && e.Session == session && !e.StartedAt.IsZero()
}

// Exercises lists the learner's progress in a course, by exercise id; exercises
// never touched are absent.
func (s *Store) Exercises(ctx context.Context, learner lab.LearnerID, course string) (map[string]Exercise, error) {
	panic("being built")
}

// UpdateExercise reads the progress of an exercise (a fresh one when there is
// none), lets change alter it and writes it back, all in one transaction; change
// must not call the Store. It returns what was written. An error from change
// is returned as it is and nothing is written. CodeNotFound for an unknown learner.
func (s *Store) UpdateExercise(ctx context.Context, learner lab.LearnerID, course, exercise string, change func(*Exercise) error) (Exercise, error) {
	panic("being built")
}

// Answer is a learner's answer to a quiz question.
type Answer struct {
	Learner  lab.LearnerID
	Course   string
	Level    string
	Question string
	Answer   json.RawMessage // the last one, in the form of its kind of question
	Correct  bool
	Attempts int
	At       time.Time
}

// SaveAnswer keeps an answer in place of the former one. Attempts is counted
// here; the result carries the count. CodeNotFound for an unknown learner.
func (s *Store) SaveAnswer(ctx context.Context, a Answer) (Answer, error) { panic("being built") }

// Answers lists the learner's answers in a course, by level and question. An empty level means all.
func (s *Store) Answers(ctx context.Context, learner lab.LearnerID, course, level string) ([]Answer, error) {
	panic("being built")
}

// ClearAnswers forgets the learner's answers of a level: the quiz is taken again.
func (s *Store) ClearAnswers(ctx context.Context, learner lab.LearnerID, course, level string) error {
	panic("being built")
}

// AppendEvents adds events to a session's stream in one transaction and drops
// what is older than the newest EventsKept. Numbers must go on from the last one
// without a gap, or CodeConflict and nothing is written.
func (s *Store) AppendEvents(ctx context.Context, session string, events []lab.Event) error {
	panic("being built")
}

// Events lists up to limit events after number after, oldest first.
func (s *Store) Events(ctx context.Context, session string, after uint64, limit int) ([]lab.Event, error) {
	panic("being built")
}

// EventRange tells the numbers of the oldest and newest event that are kept; 0, 0 without any.
func (s *Store) EventRange(ctx context.Context, session string) (first, last uint64, err error) {
	panic("being built")
}

// Token is the server's half of a kubeconfig token. The secret itself isn't kept.
type Token struct {
	Session string
	Learner lab.LearnerID
	Created time.Time
	Expires time.Time
}

// NewToken makes a kubeconfig token and returns its secret, the only time that it can be seen.
func (s *Store) NewToken(ctx context.Context, t Token) (secret string, err error) {
	panic("being built")
}

// Token finds the token of a secret; CodeNotFound when it is unknown, revoked or expired at now.
func (s *Store) Token(ctx context.Context, secret string, now time.Time) (Token, error) {
	panic("being built")
}

// RevokeTokens ends all tokens of a session at once.
func (s *Store) RevokeTokens(ctx context.Context, session string) error { panic("being built") }

// AddHistory adds lines that the learner entered in the terminal and drops all
// but the newest HistoryKept.
func (s *Store) AddHistory(ctx context.Context, session string, lines ...string) error {
	panic("being built")
}

// History lists the session's kept lines, oldest first.
func (s *Store) History(ctx context.Context, session string) ([]string, error) {
	panic("being built")
}
