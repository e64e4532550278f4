-- Shared state in a database (SQLite). `facts` of a session are its attempts, played turns,
-- conversations with their tokens, answers with their batches, outcomes of forgotten requests, the
-- number of requests, and counters of any name: see `kind`. `buckets` are those of quotas, which no
-- session has.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF; -- a machine that fails loses it all anyway
PRAGMA foreign_keys = ON;
CREATE TABLE IF NOT EXISTS sessions (
    name TEXT PRIMARY KEY, used REAL, begun REAL, bytes INTEGER DEFAULT 0);
CREATE INDEX IF NOT EXISTS sessions_by_use ON sessions (used, bytes);
CREATE TABLE IF NOT EXISTS batches (
    id INTEGER PRIMARY KEY, session TEXT REFERENCES sessions ON DELETE CASCADE,
    entries BLOB, outcomes TEXT);
CREATE INDEX IF NOT EXISTS batches_by_session ON batches (session, id);
CREATE TABLE IF NOT EXISTS facts (
    id INTEGER PRIMARY KEY, session TEXT REFERENCES sessions ON DELETE CASCADE,
    kind TEXT, key TEXT, value, UNIQUE (session, kind, key));
CREATE TABLE IF NOT EXISTS setups (
    session TEXT PRIMARY KEY REFERENCES sessions ON DELETE CASCADE, version TEXT, body BLOB);
CREATE TABLE IF NOT EXISTS evicted (name TEXT PRIMARY KEY, at REAL, had_setup INTEGER);
CREATE INDEX IF NOT EXISTS evicted_by_time ON evicted (at);
CREATE TABLE IF NOT EXISTS marks (
    session TEXT, mark TEXT, process TEXT, PRIMARY KEY (session, mark)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS buckets (name TEXT PRIMARY KEY, used REAL, at REAL, full_at REAL);
CREATE INDEX IF NOT EXISTS buckets_by_time ON buckets (full_at);
CREATE TABLE IF NOT EXISTS processes (name TEXT PRIMARY KEY, pid INTEGER, port INTEGER, ended REAL);
