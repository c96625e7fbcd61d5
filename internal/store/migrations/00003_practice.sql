-- +goose Up
CREATE TABLE practice (
    learner  TEXT    NOT NULL REFERENCES learners (id),
    course   TEXT    NOT NULL,
    question TEXT    NOT NULL,
    step     INTEGER NOT NULL,
    due      BIGINT  NOT NULL,
    correct  BOOLEAN NOT NULL,
    answered INTEGER NOT NULL,
    missed   INTEGER NOT NULL,
    at       BIGINT  NOT NULL,
    PRIMARY KEY (learner, course, question)
);

-- +goose Down
DROP TABLE practice;
