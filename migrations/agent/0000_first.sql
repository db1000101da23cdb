CREATE TABLE `active_runs` (
	`ordinal` integer PRIMARY KEY NOT NULL
);
--> statement-breakpoint
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
);
--> statement-breakpoint
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
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `calls_run` ON `calls` (`run_ordinal`);--> statement-breakpoint
CREATE INDEX `calls_look` ON `calls` (`look_at`);--> statement-breakpoint
CREATE INDEX `calls_waiting` ON `calls` (`phase`,`attached`,`due_at`,`run_ordinal`);--> statement-breakpoint
CREATE TABLE `goals` (
	`id` text PRIMARY KEY NOT NULL,
	`description` text NOT NULL,
	`status` text NOT NULL,
	`priority` integer,
	`long_term` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
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
--> statement-breakpoint
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
--> statement-breakpoint
CREATE UNIQUE INDEX `inbox_event_id_unique` ON `inbox` (`event_id`);--> statement-breakpoint
CREATE TABLE `journal` (
	`seq` integer PRIMARY KEY NOT NULL,
	`run_ordinal` integer NOT NULL,
	`step` integer NOT NULL,
	`kind` text NOT NULL,
	`content` text NOT NULL,
	`meta` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `ledger` (
	`day` text PRIMARY KEY NOT NULL,
	`spent` integer NOT NULL,
	`reserved` text NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `mcp_lists` (
	`id` integer PRIMARY KEY NOT NULL,
	`tools` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
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
--> statement-breakpoint
CREATE TABLE `memories` (
	`key` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL,
	`updated_at` integer NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
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
--> statement-breakpoint
CREATE TABLE `roots` (
	`id` text PRIMARY KEY NOT NULL,
	`wakes` integer NOT NULL,
	`updated_at` integer NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
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
);
--> statement-breakpoint
CREATE UNIQUE INDEX `runs_id_unique` ON `runs` (`id`);--> statement-breakpoint
CREATE TABLE `seen_events` (
	`event_id` text PRIMARY KEY NOT NULL,
	`received_at` integer NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
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
--> statement-breakpoint
CREATE TABLE `timers` (
	`name` text PRIMARY KEY NOT NULL,
	`due_at` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `waits` (
	`call_id` text PRIMARY KEY NOT NULL,
	`run_ordinal` integer NOT NULL,
	`space_id` text NOT NULL,
	`text` text NOT NULL,
	`question_seq` integer,
	`awaited` text NOT NULL,
	`due_at` integer NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `waits_by_run` ON `waits` (`run_ordinal`);--> statement-breakpoint
CREATE INDEX `waits_by_space` ON `waits` (`space_id`);--> statement-breakpoint
CREATE INDEX `waits_by_due` ON `waits` (`due_at`);--> statement-breakpoint
CREATE TABLE `windows` (
	`id` integer PRIMARY KEY NOT NULL,
	`instructions` text NOT NULL,
	`toolset` text NOT NULL,
	`summary` text,
	`continuity` text NOT NULL,
	`first_run` integer NOT NULL,
	`told_from` integer NOT NULL,
	`created_at` integer NOT NULL
);
