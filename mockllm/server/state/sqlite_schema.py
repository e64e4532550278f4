"""The tables of shared state in a database (SQLite)."""

__all__ = ["CLEAR", "SCHEMA"]

SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
    name TEXT PRIMARY KEY, used REAL, begun REAL, bytes INTEGER DEFAULT 0, number INTEGER DEFAULT 0,
    evicted INTEGER DEFAULT 0, again INTEGER DEFAULT 0);
CREATE INDEX IF NOT EXISTS sessions_by_use ON sessions (evicted, used, bytes);
CREATE TABLE IF NOT EXISTS batches (
    id INTEGER PRIMARY KEY, session TEXT, entries BLOB, outcomes TEXT);
CREATE INDEX IF NOT EXISTS batches_of ON batches (session, id);
CREATE TABLE IF NOT EXISTS played (
    id INTEGER PRIMARY KEY, session TEXT, scenario TEXT, turn INTEGER,
    UNIQUE (session, scenario, turn));
CREATE TABLE IF NOT EXISTS attempts (
    session TEXT, scenario TEXT, position INTEGER, tried INTEGER,
    PRIMARY KEY (session, scenario, position));
CREATE TABLE IF NOT EXISTS answers (
    number INTEGER PRIMARY KEY, session TEXT, id TEXT, entry BLOB, batch INTEGER,
    UNIQUE (session, id));
CREATE TABLE IF NOT EXISTS conversations (
    session TEXT, id TEXT, token TEXT, PRIMARY KEY (session, id));
CREATE TABLE IF NOT EXISTS forgotten (
    session TEXT, outcome TEXT, count INTEGER, PRIMARY KEY (session, outcome));
CREATE TABLE IF NOT EXISTS setups (session TEXT PRIMARY KEY, version TEXT, body BLOB, gone INTEGER);
CREATE TABLE IF NOT EXISTS processes (name TEXT PRIMARY KEY, pid INTEGER, port INTEGER, ended REAL,
    written INTEGER DEFAULT 0);
"""
CLEAR = (
    "DELETE FROM batches WHERE session = ?",
    "DELETE FROM played WHERE session = ?",
    "DELETE FROM attempts WHERE session = ?",
    "DELETE FROM answers WHERE session = ?",
    "DELETE FROM conversations WHERE session = ?",
    "DELETE FROM forgotten WHERE session = ?",
)
"""Deletes what is known of a session."""
