-- +goose Up
ALTER TABLE exercises ADD COLUMN opened TEXT NOT NULL DEFAULT 'null';

-- +goose Down
ALTER TABLE exercises DROP COLUMN opened;
