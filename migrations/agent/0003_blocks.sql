CREATE TABLE `block_calls` (
	`id` integer PRIMARY KEY NOT NULL,
	`call_id` text NOT NULL,
	`result` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `block_calls_call_id_unique` ON `block_calls` (`call_id`);--> statement-breakpoint
CREATE TABLE `block_shares` (
	`block_id` integer NOT NULL,
	`agent_id` text NOT NULL,
	`permission` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`block_id`, `agent_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `block_snapshots` (
	`block_id` integer NOT NULL,
	`part` integer NOT NULL,
	`bytes` blob NOT NULL,
	PRIMARY KEY(`block_id`, `part`)
);
--> statement-breakpoint
CREATE TABLE `block_versions` (
	`block_id` integer NOT NULL,
	`version` integer NOT NULL,
	`kind` text NOT NULL,
	`author` text NOT NULL,
	`manner` text NOT NULL,
	`operations` text NOT NULL,
	`state` text NOT NULL,
	`update` blob,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`block_id`, `version`)
) WITHOUT ROWID;
--> statement-breakpoint
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
	`updated_at` integer NOT NULL,
	`deleted_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `blocks_label` ON `blocks` (`label`) WHERE "blocks"."deleted_at" is null;--> statement-breakpoint
CREATE TABLE `shared_blocks` (
	`owner_id` text NOT NULL,
	`label` text NOT NULL,
	`owner_name` text NOT NULL,
	`type` text NOT NULL,
	`permission` text NOT NULL,
	`pinned` integer DEFAULT false NOT NULL,
	`last_used_at` integer NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`owner_id`, `label`)
) WITHOUT ROWID;
