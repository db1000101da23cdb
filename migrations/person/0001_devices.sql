CREATE TABLE `devices` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`endpoint` text NOT NULL,
	`keys` text NOT NULL,
	`origin` text NOT NULL,
	`push_key` text NOT NULL,
	`principal` text NOT NULL,
	`created_at` integer NOT NULL,
	`last_push_at` integer
);
--> statement-breakpoint
CREATE TABLE `jobs` (
	`kind` text NOT NULL,
	`key` text NOT NULL,
	`due_at` integer NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`payload` text,
	PRIMARY KEY(`kind`, `key`)
);
--> statement-breakpoint
CREATE INDEX `jobs_due` ON `jobs` (`kind`,`due_at`);--> statement-breakpoint
CREATE TABLE `people` (
	`id` text PRIMARY KEY NOT NULL,
	`workspace_id` text NOT NULL,
	`settings` text,
	`rests` integer DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE TABLE `pushes` (
	`device_id` text NOT NULL,
	`topic` text NOT NULL,
	`ids` text NOT NULL,
	`due_at` integer NOT NULL,
	`until` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`device_id`, `topic`)
);
--> statement-breakpoint
ALTER TABLE `notifications` ADD `pushed` integer DEFAULT false NOT NULL;