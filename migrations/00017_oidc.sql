-- +goose Up
-- Identities: who a person is at a provider of sign-in (OpenID Connect), by which they sign in here.

CREATE TABLE user_identity (
  id           uuid PRIMARY KEY,
  user_id      uuid NOT NULL REFERENCES user_account (id),
  issuer       text NOT NULL CHECK (length(issuer) BETWEEN 1 AND 500),
  subject      text NOT NULL CHECK (length(subject) BETWEEN 1 AND 255), -- never given to another by its issuer
  name         text NOT NULL CHECK (length(name) BETWEEN 1 AND 80),
  created_at   timestamptz NOT NULL,
  last_used_at timestamptz,
  UNIQUE (issuer, subject)
);
CREATE INDEX user_identity_user_idx ON user_identity (user_id);
GRANT SELECT, INSERT, UPDATE, DELETE ON user_identity TO graft_system;
