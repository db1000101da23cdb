CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric);
INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('', 1795838449366);
CREATE TABLE `agent` (
	`id` text PRIMARY KEY NOT NULL,
	`workspace_id` text NOT NULL,
	`config` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`active_space_id` text,
	`correction` real DEFAULT 1 NOT NULL,
	`correction_model` text,
	`secrets` text NOT NULL,
	`last_error` text,
	`own_root` text
, `compartment_id` text, `compartment_space_id` text, `settings_version` integer DEFAULT 0 NOT NULL, `suspended` integer DEFAULT false NOT NULL);
CREATE TABLE `calls` (
	`call_id` text PRIMARY KEY NOT NULL,
	`run_ordinal` integer NOT NULL,
	`tool` text NOT NULL,
	`input` text NOT NULL,
	`space_id` text,
	`active_space_id` text,
	`root` text NOT NULL,
	`origin` text,
	`stream_id` text,
	`attached` integer NOT NULL,
	`phase` text NOT NULL,
	`outcome` text,
	`approval` text,
	`told` text,
	`pushed` integer DEFAULT false NOT NULL,
	`listed` integer DEFAULT false NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL,
	`lease` text,
	`due_at` integer,
	`kept_until` integer,
	`look_at` integer,
	`created_at` integer NOT NULL
, `release` text) WITHOUT ROWID;
CREATE INDEX `calls_run` ON `calls` (`run_ordinal`);
CREATE INDEX `calls_look` ON `calls` (`look_at`);
CREATE INDEX `calls_waiting` ON `calls` (`phase`,`attached`,`due_at`,`run_ordinal`);
CREATE TABLE `goals` (
	`id` text PRIMARY KEY NOT NULL,
	`description` text NOT NULL,
	`status` text NOT NULL,
	`priority` integer,
	`long_term` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
CREATE TABLE `hooks` (
	`id` text PRIMARY KEY NOT NULL,
	`scheme` text NOT NULL,
	`name` text NOT NULL,
	`header` text,
	`id_header` text,
	`event_header` text,
	`template` text,
	`events` text,
	`sealed` text NOT NULL,
	`version` text NOT NULL,
	`previous_sealed` text,
	`previous_until` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
) WITHOUT ROWID;
CREATE TABLE `inbox` (
	`seq` integer PRIMARY KEY NOT NULL,
	`event_id` text NOT NULL,
	`type` text NOT NULL,
	`data` text NOT NULL,
	`root_id` text NOT NULL,
	`wakes` integer NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`status` text DEFAULT 'pending' NOT NULL,
	`last_error` text,
	`retry_at` integer,
	`received_at` integer NOT NULL
);
CREATE TABLE `journal` (
	`seq` integer PRIMARY KEY NOT NULL,
	`run_ordinal` integer NOT NULL,
	`step` integer NOT NULL,
	`kind` text NOT NULL,
	`content` text NOT NULL,
	`meta` text,
	`created_at` integer NOT NULL
);
CREATE TABLE `ledger` (
	`day` text PRIMARY KEY NOT NULL,
	`spent` integer NOT NULL,
	`reserved` text NOT NULL
, `within` text DEFAULT '{}' NOT NULL) WITHOUT ROWID;
CREATE TABLE `mcp_lists` (
	`id` integer PRIMARY KEY NOT NULL,
	`tools` text NOT NULL,
	`created_at` integer NOT NULL
);
CREATE TABLE `mcp_servers` (
	`name` text PRIMARY KEY NOT NULL,
	`address` text NOT NULL,
	`tools` text NOT NULL,
	`left_out` text NOT NULL,
	`protocol_version` text,
	`fetched_at` integer,
	`failing_since` integer,
	`last_error` text,
	`failures` integer NOT NULL,
	`next_at` integer
) WITHOUT ROWID;
CREATE TABLE `memories` (
	`key` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL,
	`updated_at` integer NOT NULL
) WITHOUT ROWID;
CREATE TABLE `plans` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`instruction` text NOT NULL,
	`run_after` text,
	`scheduled_at` text,
	`cron` text,
	`timezone` text,
	`set_by` text NOT NULL,
	`root` text,
	`call_id` text,
	`status` text NOT NULL,
	`due_at` integer NOT NULL,
	`try_at` integer NOT NULL,
	`fired_for` integer,
	`last_error` text,
	`updated_at` integer NOT NULL
) WITHOUT ROWID;
CREATE TABLE `roots` (
	`id` text PRIMARY KEY NOT NULL,
	`wakes` integer NOT NULL,
	`updated_at` integer NOT NULL
) WITHOUT ROWID;
CREATE TABLE `runs` (
	`ordinal` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`status` text NOT NULL,
	`continuity` text NOT NULL,
	`ended_by` text,
	`trigger` text NOT NULL,
	`events` text NOT NULL,
	`roots` text NOT NULL,
	`space_ids` text NOT NULL,
	`window_id` integer NOT NULL,
	`journal_from` integer NOT NULL,
	`journal_to` integer,
	`rests` text,
	`told` text NOT NULL,
	`kept` integer DEFAULT false NOT NULL,
	`kept_before` integer NOT NULL,
	`silent_before` integer NOT NULL,
	`active_space_id` text,
	`outcome` text,
	`reason` text,
	`error` text,
	`receipts` text,
	`prefix_reuse` real,
	`faults` integer DEFAULT 0 NOT NULL,
	`first_fault_at` integer,
	`resume_at` integer,
	`started_at` integer NOT NULL,
	`completed_at` integer
, `thought_ms` integer DEFAULT 0 NOT NULL, `thinks_since` integer, `person` text, `person_runs` integer, `fed` integer, `correction` text, `lease` text);
CREATE UNIQUE INDEX `runs_id_unique` ON `runs` (`id`);
CREATE TABLE `seen_events` (
	`event_id` text PRIMARY KEY NOT NULL,
	`received_at` integer NOT NULL
) WITHOUT ROWID;
CREATE TABLE `spaces` (
	`id` text PRIMARY KEY NOT NULL,
	`snapshot` text NOT NULL,
	`version` integer NOT NULL,
	`cursor` integer NOT NULL,
	`processed_seq` integer DEFAULT 0 NOT NULL,
	`acknowledged` text DEFAULT '[]' NOT NULL,
	`left_to_history` integer DEFAULT 0 NOT NULL,
	`left` integer DEFAULT false NOT NULL
);
CREATE TABLE `timers` (
	`name` text PRIMARY KEY NOT NULL,
	`due_at` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL
) WITHOUT ROWID;
CREATE TABLE `waits` (
	`call_id` text PRIMARY KEY NOT NULL,
	`run_ordinal` integer NOT NULL,
	`space_id` text NOT NULL,
	`text` text NOT NULL,
	`question_seq` integer,
	`awaited` text NOT NULL,
	`due_at` integer NOT NULL
, `root` text) WITHOUT ROWID;
CREATE INDEX `waits_by_run` ON `waits` (`run_ordinal`);
CREATE INDEX `waits_by_space` ON `waits` (`space_id`);
CREATE INDEX `waits_by_due` ON `waits` (`due_at`);
CREATE TABLE `windows` (
	`id` integer PRIMARY KEY NOT NULL,
	`instructions` text NOT NULL,
	`toolset` text NOT NULL,
	`summary` text,
	`continuity` text NOT NULL,
	`first_run` integer NOT NULL,
	`told_from` integer NOT NULL,
	`created_at` integer NOT NULL
, `blocks` text DEFAULT '{}' NOT NULL);
CREATE TABLE `archival` (
	`ordinal` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`content` text NOT NULL,
	`metadata` text NOT NULL,
	`source` text NOT NULL,
	`created_at` integer NOT NULL
);
CREATE UNIQUE INDEX `archival_id_unique` ON `archival` (`id`);
CREATE TABLE `search_entries` (
	`id` integer PRIMARY KEY NOT NULL,
	`type` text NOT NULL,
	`ref` text NOT NULL,
	`part` integer NOT NULL,
	`version` integer,
	`role` text,
	`space_id` text,
	`message_id` text,
	`author_id` text,
	`author_name` text,
	`at` integer NOT NULL,
	`head` text NOT NULL,
	`text` text NOT NULL
, `lived` text);
CREATE INDEX `search_entries_ref` ON `search_entries` (`ref`) WHERE type in ('block', 'archival');
CREATE TABLE `search_state` (
	`id` integer PRIMARY KEY NOT NULL,
	`embedder_id` text,
	`embedded_up_to` integer NOT NULL,
	`used_at` integer NOT NULL
, `passages` integer DEFAULT 0 NOT NULL);
CREATE TABLE `search_vectors` (
	`id` integer PRIMARY KEY NOT NULL,
	`passages` integer NOT NULL,
	`packed` blob NOT NULL
);
CREATE VIRTUAL TABLE `search_words` USING fts5(`head`, `text`, content='search_entries', content_rowid='id', tokenize='porter unicode61');
CREATE TRIGGER `search_entries_added` AFTER INSERT ON `search_entries` BEGIN
	INSERT INTO `search_words` (`rowid`, `head`, `text`) VALUES (new.`id`, new.`head`, new.`text`);
END;
CREATE TRIGGER `search_entries_removed` AFTER DELETE ON `search_entries` BEGIN
	INSERT INTO `search_words` (`search_words`, `rowid`, `head`, `text`) VALUES ('delete', old.`id`, old.`head`, old.`text`);
END;
CREATE TABLE `summaries` (
	`subject` text PRIMARY KEY NOT NULL,
	`text` text,
	`base` integer NOT NULL,
	`up_to` integer NOT NULL,
	`wanted` integer NOT NULL,
	`try_at` integer,
	`failures` integer NOT NULL,
	`last_error` text,
	`updated_at` integer NOT NULL
);
CREATE TABLE `block_calls` (
	`id` integer PRIMARY KEY NOT NULL,
	`call_id` text NOT NULL,
	`result` text NOT NULL
);
CREATE UNIQUE INDEX `block_calls_call_id_unique` ON `block_calls` (`call_id`);
CREATE TABLE `block_snapshots` (
	`block_id` integer NOT NULL,
	`part` integer NOT NULL,
	`bytes` blob NOT NULL,
	PRIMARY KEY(`block_id`, `part`)
);
CREATE TABLE `block_versions` (
	`block_id` integer NOT NULL,
	`version` integer NOT NULL,
	`kind` text NOT NULL,
	`author` text NOT NULL,
	`manner` text NOT NULL,
	`operations` text NOT NULL,
	`state` text NOT NULL,
	`update` blob,
	`created_at` integer NOT NULL, `sources` text,
	PRIMARY KEY(`block_id`, `version`)
) WITHOUT ROWID;
CREATE TABLE `blocks` (
	`id` integer PRIMARY KEY NOT NULL,
	`label` text NOT NULL,
	`type` text NOT NULL,
	`permission` text NOT NULL,
	`description` text NOT NULL,
	`schema` text NOT NULL,
	`pinned` integer NOT NULL,
	`char_limit` integer NOT NULL,
	`partner_entity_id` text,
	`version` integer NOT NULL,
	`rendered` text NOT NULL,
	`snapshot_version` integer NOT NULL,
	`last_used_at` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL, `archived` text, `confidential` text, `rendered_by` integer DEFAULT 0 NOT NULL);
CREATE TABLE `shared_blocks` (
	`owner_id` text NOT NULL,
	`label` text NOT NULL,
	`owner_name` text NOT NULL,
	`type` text NOT NULL,
	`permission` text NOT NULL,
	`pinned` integer DEFAULT false NOT NULL,
	`created_at` integer NOT NULL, `open` text,
	PRIMARY KEY(`owner_id`, `label`)
) WITHOUT ROWID;
CREATE TABLE `imports` (
	`id` integer PRIMARY KEY NOT NULL,
	`workspace_id` text NOT NULL,
	`agent_id` text NOT NULL,
	`token` text NOT NULL,
	`envelope` text,
	`head` text,
	`report` text,
	`shares` integer DEFAULT 0 NOT NULL,
	`journal_up_to` integer DEFAULT 0 NOT NULL,
	`touched_at` integer NOT NULL,
	`completed_at` integer
);
CREATE TABLE `known_names` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL
) WITHOUT ROWID;
CREATE TABLE `shares` (
	`block_id` integer NOT NULL,
	`grantee_id` text NOT NULL,
	`permission` text NOT NULL,
	`created_at` integer NOT NULL, `since_version` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`block_id`, `grantee_id`)
) WITHOUT ROWID;
CREATE UNIQUE INDEX `inbox_event_id` ON `inbox` (`event_id`) WHERE type <> 'space_message';
CREATE TABLE `overheard` (
	`seq` integer PRIMARY KEY NOT NULL,
	`event_id` text NOT NULL,
	`type` text NOT NULL,
	`data` text NOT NULL,
	`root_id` text NOT NULL,
	`received_at` integer NOT NULL
);
CREATE VIEW `events` AS select "seq", "event_id", "type", "data", "root_id", "received_at", "wakes", "attempts", "status", "last_error", "retry_at" from "inbox" union all select "seq", "event_id", "type", "data", "root_id", "received_at", 0 as "wakes", 0 as "attempts", 'pending' as "status", null as "last_error", null as "retry_at" from "overheard";
CREATE INDEX `runs_active` ON `runs` (`ordinal`) WHERE continuity = 'timeline' and status in ('running', 'waiting_reply');
CREATE UNIQUE INDEX `blocks_label` ON `blocks` (`label`);
CREATE TABLE "search_sources" (
	`name` text PRIMARY KEY NOT NULL,
	`cursor` integer NOT NULL
) WITHOUT ROWID;
CREATE INDEX `search_entries_message` ON `search_entries` (`ref`) WHERE type = 'message';
CREATE INDEX `runs_ended_by` ON `runs` (`ended_by`) WHERE ended_by is not null;
CREATE INDEX `runs_rested` ON `runs` (`completed_at`) WHERE rests is not null;
CREATE TABLE `journal_names` (
	`part` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL
);
CREATE TABLE `out_of_budget` (
	`person` text PRIMARY KEY NOT NULL,
	`until` integer NOT NULL,
	`spaces` text NOT NULL
, `budget` text DEFAULT 'tokens' NOT NULL);
CREATE TABLE `compartments` (
	`space_id` text PRIMARY KEY NOT NULL,
	`mind_id` text NOT NULL
);
CREATE TABLE `jobs` (
	`kind` text NOT NULL,
	`key` text NOT NULL,
	`due_at` integer NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`payload` text,
	PRIMARY KEY(`kind`, `key`)
);
CREATE INDEX `jobs_due` ON `jobs` (`kind`,`due_at`);
CREATE TABLE `feed` (
	`part` text PRIMARY KEY NOT NULL,
	`hash` text NOT NULL,
	`value` text NOT NULL
);
CREATE INDEX `runs_own` ON `runs` (`ordinal`) WHERE fed = 0;
CREATE TABLE `secret_uses` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`by` text NOT NULL,
	`host` text NOT NULL,
	`cause` text NOT NULL,
	`times` integer DEFAULT 1 NOT NULL,
	`first_at` integer NOT NULL,
	`last_at` integer NOT NULL
);
CREATE UNIQUE INDEX `secret_uses_use` ON `secret_uses` (`name`,`kind`,`by`,`host`,`cause`);
CREATE TABLE "redactions" (
	`id` text PRIMARY KEY NOT NULL,
	`words` text,
	`text` text,
	`sender_name` text,
	`space_id` text,
	`message_ids` text,
	`since` integer NOT NULL,
	`place` integer NOT NULL,
	`after` integer NOT NULL,
	`known_from` integer,
	`last_run` integer NOT NULL,
	`rows` integer DEFAULT 0 NOT NULL,
	`is_known` integer NOT NULL,
	`at` integer NOT NULL,
	`said_at` text,
	`kept` text
) WITHOUT ROWID;
INSERT INTO `search_words` (`search_words`, `rank`) VALUES ('secure-delete', 1);
