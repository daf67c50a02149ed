-- +goose Up
-- Passkeys: what people sign in with beside a password or in place of one.

CREATE TABLE user_passkey (
  id              uuid PRIMARY KEY,
  user_id         uuid NOT NULL REFERENCES user_account (id),
  credential      bytea NOT NULL UNIQUE CHECK (length(credential) BETWEEN 16 AND 1023), -- its id, as the authenticator made it
  name            text NOT NULL CHECK (length(name) BETWEEN 1 AND 80),
  public_key      bytea NOT NULL, -- COSE_Key
  sign_count      bigint NOT NULL CHECK (sign_count BETWEEN 0 AND 4294967295),
  backup_eligible boolean NOT NULL, -- never changes
  transports      text[] NOT NULL, -- how a browser reaches it
  created_at      timestamptz NOT NULL,
  last_used_at    timestamptz
);
CREATE INDEX user_passkey_user_idx ON user_passkey (user_id);
GRANT SELECT, INSERT, UPDATE, DELETE ON user_passkey TO graft_system;
