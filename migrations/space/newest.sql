CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric);
INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('', 1795843882391);
CREATE TABLE `decisions` (
	`seq` integer PRIMARY KEY NOT NULL,
	`decision` text
);
CREATE INDEX `decisions_pending` ON `decisions` (`seq`) WHERE decision IS NULL;
CREATE TABLE `log` (
	`seq` integer PRIMARY KEY NOT NULL,
	`type` text NOT NULL,
	`entity_id` text,
	`message_id` text,
	`message_count` integer NOT NULL,
	`routing` text,
	`outcome` text,
	`frame` text NOT NULL
, `read` text, `changed_seq` integer, `was` text);
CREATE UNIQUE INDEX `log_message_id` ON `log` (`message_id`) WHERE message_id IS NOT NULL;
CREATE UNIQUE INDEX `log_message_count` ON `log` (`message_count`) WHERE message_id IS NOT NULL;
CREATE TABLE `members` (
	`entity_id` text PRIMARY KEY NOT NULL,
	`type` text NOT NULL,
	`name` text NOT NULL,
	`joined_seq` integer NOT NULL,
	`joined_at` integer NOT NULL,
	`read_seq` integer NOT NULL,
	`read_count` integer NOT NULL,
	`mark` text
, `spent` text, `follows` text);
CREATE TABLE `router_ledger` (
	`day` text PRIMARY KEY NOT NULL,
	`tokens` integer NOT NULL
);
CREATE TABLE `space` (
	`id` text PRIMARY KEY NOT NULL,
	`workspace_id` text NOT NULL,
	`name` text NOT NULL,
	`wake_policy` text NOT NULL,
	`share_origin` text NOT NULL,
	`router` text,
	`created_by` text,
	`created_at` integer NOT NULL,
	`version` integer NOT NULL,
	`deleted_seq` integer
, `confidential_from` integer, `release` text, `suspended` integer DEFAULT false NOT NULL, `retention_days` integer, `workspace_retention_days` integer);
CREATE TABLE `subscribers` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`cursor` integer NOT NULL,
	`inside` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL,
	`retry_at` integer
, `compartment_of` text, `endpoint` text);
CREATE TABLE `timers` (
	`name` text PRIMARY KEY NOT NULL,
	`due_at` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL
) WITHOUT ROWID;
CREATE TABLE `tool_calls` (
	`seq` integer PRIMARY KEY NOT NULL,
	`agent_id` text NOT NULL,
	`is_open` integer NOT NULL,
	`expires_at` integer,
	`updated_seq` integer NOT NULL,
	`message` text NOT NULL
, `open_message` text);
CREATE INDEX `tool_calls_open` ON `tool_calls` (`agent_id`) WHERE is_open = 1;
CREATE INDEX `tool_calls_due` ON `tool_calls` (`expires_at`) WHERE expires_at IS NOT NULL;
CREATE TABLE `jobs` (
	`kind` text NOT NULL,
	`key` text NOT NULL,
	`due_at` integer NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`payload` text,
	PRIMARY KEY(`kind`, `key`)
);
CREATE INDEX `jobs_due` ON `jobs` (`kind`,`due_at`);
CREATE INDEX `log_members` ON `log` (`type`) WHERE type = 'member.joined' OR type = 'member.left';
CREATE INDEX `log_was` ON `log` (`seq`) WHERE was IS NOT NULL;
