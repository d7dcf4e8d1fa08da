// Made by `make docs` from core/states.py, core/people/roles.py and core/limits.py below src/evenflow. Edit those, not this.
export const STATE_WORDS: Record<string, string> = {
  none: "waiting",
  scheduled: "scheduled",
  queued: "queued",
  running: "running",
  deferred: "deferred",
  up_for_retry: "retrying",
  up_for_reschedule: "rescheduled",
  success: "success",
  failed: "failed",
  skipped: "skipped",
  upstream_failed: "upstream failed",
  removed: "removed",
};

export const ROLES = ["viewer", "author", "operator", "admin"] as const;

// What each may do beyond those before it.
export const ROLE_MAY: Record<(typeof ROLES)[number], string> = {
  viewer: "see DAGs, runs, logs, results, code and capacity",
  author: "trigger, cancel, clear, mark and backfill runs, pause DAGs, say that an asset has changed",
  operator: "change what all share (pools, executors, fleets, settings, connections), see secrets, delete, read events",
  admin: "say who may do what, end sessions of others, change the keys of secrets",
};

export const PASSWORD_LEAST = 12; // characters
