CREATE TABLE `decisions` (
	`seq` integer PRIMARY KEY NOT NULL,
	`tries` integer NOT NULL,
	`decision` text
);
--> statement-breakpoint
CREATE INDEX `decisions_pending` ON `decisions` (`seq`) WHERE decision IS NULL;--> statement-breakpoint
CREATE TABLE `log` (
	`seq` integer PRIMARY KEY NOT NULL,
	`type` text NOT NULL,
	`entity_id` text,
	`message_id` text,
	`message_count` integer NOT NULL,
	`routing` text,
	`outcome` text,
	`frame` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `log_message_id` ON `log` (`message_id`) WHERE message_id IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX `log_message_count` ON `log` (`message_count`) WHERE message_id IS NOT NULL;--> statement-breakpoint
CREATE TABLE `members` (
	`entity_id` text PRIMARY KEY NOT NULL,
	`type` text NOT NULL,
	`name` text NOT NULL,
	`joined_seq` integer NOT NULL,
	`joined_at` integer NOT NULL,
	`read_seq` integer NOT NULL,
	`read_count` integer NOT NULL,
	`mark` text
);
--> statement-breakpoint
CREATE TABLE `router_ledger` (
	`day` text PRIMARY KEY NOT NULL,
	`tokens` integer NOT NULL
);
--> statement-breakpoint
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
);
--> statement-breakpoint
CREATE TABLE `subscribers` (
	`id` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`cursor` integer NOT NULL,
	`inside` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL,
	`retry_at` integer
);
--> statement-breakpoint
CREATE TABLE `timers` (
	`name` text PRIMARY KEY NOT NULL,
	`due_at` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `tool_calls` (
	`seq` integer PRIMARY KEY NOT NULL,
	`agent_id` text NOT NULL,
	`is_open` integer NOT NULL,
	`expires_at` integer,
	`updated_seq` integer NOT NULL,
	`message` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `tool_calls_open` ON `tool_calls` (`agent_id`) WHERE is_open = 1;--> statement-breakpoint
CREATE INDEX `tool_calls_due` ON `tool_calls` (`expires_at`) WHERE expires_at IS NOT NULL;