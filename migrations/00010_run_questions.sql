-- +goose Up
-- A run may ask its client's person something while it goes on: what it waits for, and what it was answered, both sealed.
ALTER TABLE run
  ADD COLUMN questions bytea,
  ADD COLUMN answers bytea[] NOT NULL DEFAULT '{}';
