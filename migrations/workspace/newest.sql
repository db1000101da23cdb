CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric);
INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('', 1795838920541);
CREATE TABLE `entities` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`type` text NOT NULL,
	`name` text NOT NULL,
	`agent_name` text,
	`role` text NOT NULL,
	`external_id` text,
	`created_at` integer NOT NULL
, `generation` integer DEFAULT 0 NOT NULL, `signed_out_at` integer);
CREATE UNIQUE INDEX `entities_id` ON `entities` (`id`);
CREATE UNIQUE INDEX `entities_agent_name` ON `entities` (`agent_name`) WHERE "entities"."agent_name" is not null;
CREATE INDEX `entities_type` ON `entities` (`type`,`position`);
CREATE TABLE `keys` (
	`id` text PRIMARY KEY NOT NULL,
	`hash` text NOT NULL,
	`created_at` integer NOT NULL,
	`revoked_at` integer
, `name` text, `scopes` text DEFAULT '["full"]' NOT NULL, `last_used_at` integer, `expires_at` integer, `successor_id` text, `signs_in` integer DEFAULT false NOT NULL);
CREATE UNIQUE INDEX `keys_hash` ON `keys` (`hash`);
CREATE TABLE `memberships` (
	`entity_id` text NOT NULL,
	`space_position` integer NOT NULL,
	PRIMARY KEY(`entity_id`, `space_position`)
);
CREATE INDEX `memberships_space` ON `memberships` (`space_position`);
CREATE TABLE `requests` (
	`principal` text NOT NULL,
	`key` text NOT NULL,
	`body_hash` text NOT NULL,
	`status` integer,
	`body` text,
	`begun_at` integer NOT NULL,
	PRIMARY KEY(`principal`, `key`)
);
CREATE INDEX `requests_begun` ON `requests` (`begun_at`);
CREATE TABLE `secrets` (
	`name` text PRIMARY KEY NOT NULL,
	`sealed` text NOT NULL,
	`updated_at` integer NOT NULL
);
CREATE TABLE `spaces` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`name` text NOT NULL,
	`wake_policy` text NOT NULL,
	`share_origin` text NOT NULL,
	`created_by` text,
	`created_at` text NOT NULL,
	`cursor` integer NOT NULL,
	`deleted` integer DEFAULT false NOT NULL
, `confidential` integer DEFAULT false NOT NULL);
CREATE UNIQUE INDEX `spaces_id` ON `spaces` (`id`);
CREATE TABLE `timers` (
	`name` text PRIMARY KEY NOT NULL,
	`due_at` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL
) WITHOUT ROWID;
CREATE TABLE `waiting_calls` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`tool_call_id` text NOT NULL,
	`agent_id` text NOT NULL,
	`call` text NOT NULL
);
CREATE UNIQUE INDEX `waiting_calls_id` ON `waiting_calls` (`tool_call_id`);
CREATE INDEX `waiting_calls_agent` ON `waiting_calls` (`agent_id`);
CREATE TABLE `workspace` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`created_at` integer NOT NULL
, `impersonated_approvals` text DEFAULT 'refused' NOT NULL, `reseal` text, `suspended` text, `deleted_at` integer, `limits` text DEFAULT '{}' NOT NULL, `auth` text, `retention_days` integer, `audit_webhook` text, `audit_told` integer DEFAULT 0 NOT NULL, `endpoints_version` integer DEFAULT 0 NOT NULL);
CREATE TABLE `jobs` (
	`kind` text NOT NULL,
	`key` text NOT NULL,
	`due_at` integer NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`payload` text,
	PRIMARY KEY(`kind`, `key`)
);
CREATE INDEX `jobs_due` ON `jobs` (`kind`,`due_at`);
CREATE TABLE `sign_in_codes` (
	`hash` text PRIMARY KEY NOT NULL,
	`entity_id` text NOT NULL,
	`made_by` text,
	`expires_at` integer NOT NULL
, `issuer` text, `key_id` text, `auth_id` text);
CREATE INDEX `sign_in_codes_entity` ON `sign_in_codes` (`entity_id`);
CREATE INDEX `spaces_created_by` ON `spaces` (`created_by`,`created_at`) WHERE created_by is not null;
CREATE TABLE `sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`entity_id` text NOT NULL,
	`expires_at` integer NOT NULL
);
CREATE INDEX `sessions_entity` ON `sessions` (`entity_id`,`expires_at`);
CREATE TABLE `audit` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` integer NOT NULL,
	`action` text NOT NULL,
	`actor` text NOT NULL,
	`actor_as` text,
	`impersonated_by` text,
	`target` text NOT NULL,
	`detail` text,
	`once` text
);
CREATE UNIQUE INDEX `audit_once` ON `audit` (`once`);
CREATE INDEX `audit_action` ON `audit` (`action`);
CREATE INDEX `audit_actor` ON `audit` (`actor`);
CREATE INDEX `audit_target` ON `audit` (`target`);
CREATE TABLE `registry` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`workspace` text NOT NULL
);
CREATE UNIQUE INDEX `registry_id` ON `registry` (`id`);
CREATE TABLE `spaces_to_be` (
	`id` text PRIMARY KEY NOT NULL,
	`made_by` text,
	`until` integer NOT NULL
);
CREATE TABLE `token_leases` (
	`day` text NOT NULL,
	`agent_id` text NOT NULL,
	`leased` integer NOT NULL,
	`booked` integer NOT NULL,
	`seq` integer NOT NULL,
	PRIMARY KEY(`day`, `agent_id`)
);
CREATE TABLE `counters` (
	`series` text PRIMARY KEY NOT NULL,
	`value` real NOT NULL
);
CREATE TABLE `gauges` (
	`family` text NOT NULL,
	`object` text NOT NULL,
	`value` integer NOT NULL,
	`at` integer NOT NULL,
	PRIMARY KEY(`family`, `object`)
);
CREATE INDEX `gauges_at` ON `gauges` (`at`);
CREATE TABLE `removed_subjects` (
	`hash` text PRIMARY KEY NOT NULL,
	`removed_at` integer NOT NULL
);
CREATE INDEX `entities_external` ON `entities` (`external_id`) WHERE external_id is not null;
CREATE TABLE `usage` (
	`day` text NOT NULL,
	`reporter` text NOT NULL,
	`kind` text NOT NULL,
	`subject` text NOT NULL,
	`tokens` integer DEFAULT 0 NOT NULL,
	`runs` integer DEFAULT 0 NOT NULL,
	`messages` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`day`, `reporter`, `kind`, `subject`)
);
CREATE TABLE `erasure_visits` (
	`erasure_id` text NOT NULL,
	`target` text NOT NULL,
	`place` integer DEFAULT 0 NOT NULL,
	`up_to` integer,
	`rows` integer DEFAULT 0 NOT NULL,
	`objects` integer DEFAULT 0 NOT NULL,
	`is_done` integer DEFAULT false NOT NULL, `requests` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`erasure_id`, `target`)
);
CREATE TABLE `erasures` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`kind` text NOT NULL,
	`phase` integer DEFAULT -1 NOT NULL,
	`names` text NOT NULL,
	`rows` integer DEFAULT 0 NOT NULL,
	`objects` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`completed_at` integer
, `requests` integer DEFAULT 0 NOT NULL);
CREATE UNIQUE INDEX `erasures_id` ON `erasures` (`id`);
CREATE TABLE `socket_objects` (
	`id` text PRIMARY KEY NOT NULL,
	`proven_at` integer NOT NULL
);
CREATE TABLE `endpoints` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`url` text NOT NULL,
	`types` text NOT NULL,
	`space_ids` text,
	`description` text,
	`batch` integer NOT NULL,
	`secrets` text NOT NULL,
	`disabled` text,
	`version` integer NOT NULL,
	`told_to` integer NOT NULL,
	`created_at` integer NOT NULL
);
CREATE UNIQUE INDEX `endpoints_id` ON `endpoints` (`id`);
CREATE TABLE `feed` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` integer NOT NULL,
	`type` text NOT NULL,
	`subject` text NOT NULL
);
