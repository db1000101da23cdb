CREATE TABLE `entities` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`type` text NOT NULL,
	`name` text NOT NULL,
	`agent_name` text,
	`role` text NOT NULL,
	`external_id` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `entities_id` ON `entities` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `entities_agent_name` ON `entities` (`agent_name`) WHERE "entities"."agent_name" is not null;--> statement-breakpoint
CREATE INDEX `entities_type` ON `entities` (`type`,`position`);--> statement-breakpoint
CREATE TABLE `keys` (
	`id` text PRIMARY KEY NOT NULL,
	`hash` text NOT NULL,
	`created_at` integer NOT NULL,
	`revoked_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `keys_hash` ON `keys` (`hash`);--> statement-breakpoint
CREATE TABLE `memberships` (
	`entity_id` text NOT NULL,
	`space_position` integer NOT NULL,
	PRIMARY KEY(`entity_id`, `space_position`)
);
--> statement-breakpoint
CREATE INDEX `memberships_space` ON `memberships` (`space_position`);--> statement-breakpoint
CREATE TABLE `outbox` (
	`kind` text NOT NULL,
	`target` text NOT NULL,
	`subject` text NOT NULL,
	`version` integer DEFAULT 1 NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`due_at` integer NOT NULL,
	PRIMARY KEY(`kind`, `target`, `subject`)
);
--> statement-breakpoint
CREATE INDEX `outbox_due` ON `outbox` (`due_at`);--> statement-breakpoint
CREATE TABLE `requests` (
	`principal` text NOT NULL,
	`key` text NOT NULL,
	`body_hash` text NOT NULL,
	`status` integer,
	`body` text,
	`begun_at` integer NOT NULL,
	PRIMARY KEY(`principal`, `key`)
);
--> statement-breakpoint
CREATE INDEX `requests_begun` ON `requests` (`begun_at`);--> statement-breakpoint
CREATE TABLE `secrets` (
	`name` text PRIMARY KEY NOT NULL,
	`sealed` text NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
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
);
--> statement-breakpoint
CREATE UNIQUE INDEX `spaces_id` ON `spaces` (`id`);--> statement-breakpoint
CREATE TABLE `timers` (
	`name` text PRIMARY KEY NOT NULL,
	`due_at` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `waiting_calls` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`tool_call_id` text NOT NULL,
	`agent_id` text NOT NULL,
	`call` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `waiting_calls_id` ON `waiting_calls` (`tool_call_id`);--> statement-breakpoint
CREATE INDEX `waiting_calls_agent` ON `waiting_calls` (`agent_id`);--> statement-breakpoint
CREATE TABLE `workspace` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`created_at` integer NOT NULL
);
