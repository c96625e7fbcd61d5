-- Kept to what SQLite and PostgreSQL both understand. Times are Unix
-- nanoseconds; 0 stands for "not yet".

-- +goose Up
CREATE TABLE learners (
    id        TEXT   NOT NULL PRIMARY KEY,
    created   BIGINT NOT NULL,
    last_seen BIGINT NOT NULL,
    lang      TEXT   NOT NULL DEFAULT ''
);

CREATE TABLE sessions (
    id      TEXT   NOT NULL PRIMARY KEY,
    learner TEXT   NOT NULL REFERENCES learners (id),
    course  TEXT   NOT NULL,
    cluster TEXT   NOT NULL,
    spec    TEXT   NOT NULL,
    created BIGINT NOT NULL,
    ended   BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX sessions_running ON sessions (learner, course) WHERE ended = 0;
CREATE INDEX sessions_of_learner ON sessions (learner, created);

CREATE TABLE exercises (
    learner     TEXT    NOT NULL REFERENCES learners (id),
    course      TEXT    NOT NULL,
    exercise    TEXT    NOT NULL,
    session     TEXT    NOT NULL,
    started_at  BIGINT  NOT NULL,
    start_event BIGINT  NOT NULL,
    done_at     BIGINT  NOT NULL,
    hints       INTEGER NOT NULL,
    solved      BOOLEAN NOT NULL,
    met         TEXT    NOT NULL,
    typed       TEXT    NOT NULL,
    PRIMARY KEY (learner, course, exercise)
);

CREATE TABLE answers (
    learner  TEXT    NOT NULL REFERENCES learners (id),
    course   TEXT    NOT NULL,
    level    TEXT    NOT NULL,
    question TEXT    NOT NULL,
    answer   TEXT    NOT NULL,
    correct  BOOLEAN NOT NULL,
    attempts INTEGER NOT NULL,
    at       BIGINT  NOT NULL,
    PRIMARY KEY (learner, course, level, question)
);

CREATE TABLE events (
    session TEXT   NOT NULL REFERENCES sessions (id),
    n       BIGINT NOT NULL,
    frame   TEXT   NOT NULL,
    PRIMARY KEY (session, n)
);

CREATE TABLE tokens (
    hash    TEXT    NOT NULL PRIMARY KEY,
    session TEXT    NOT NULL REFERENCES sessions (id),
    learner TEXT    NOT NULL REFERENCES learners (id),
    created BIGINT  NOT NULL,
    expires BIGINT  NOT NULL,
    revoked BOOLEAN NOT NULL DEFAULT FALSE
);
CREATE INDEX tokens_of_session ON tokens (session);

CREATE TABLE history (
    session TEXT   NOT NULL REFERENCES sessions (id),
    n       BIGINT NOT NULL,
    line    TEXT   NOT NULL,
    PRIMARY KEY (session, n)
);

-- +goose Down
DROP TABLE history;
DROP TABLE tokens;
DROP TABLE events;
DROP TABLE answers;
DROP TABLE exercises;
DROP TABLE sessions;
DROP TABLE learners;
