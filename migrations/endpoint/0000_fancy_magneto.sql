CREATE TABLE `deliveries` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`source_id` text NOT NULL,
	`seq` integer NOT NULL,
	`webhook_id` text NOT NULL,
	`type` text NOT NULL,
	`events` integer NOT NULL,
	`at` integer NOT NULL,
	`attempt` integer NOT NULL,
	`is_delivered` integer NOT NULL,
	`status` integer,
	`ms` integer NOT NULL,
	`answer` text,
	`error` text
);
--> statement-breakpoint
CREATE INDEX `deliveries_at` ON `deliveries` (`at`);--> statement-breakpoint
CREATE TABLE `endpoint` (
	`id` text PRIMARY KEY NOT NULL,
	`config` text NOT NULL
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
CREATE TABLE `sources` (
	`id` text PRIMARY KEY NOT NULL,
	`cursor` integer NOT NULL,
	`head` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL,
	`failing_since` integer
);
--> statement-breakpoint
CREATE TABLE `timers` (
	`name` text PRIMARY KEY NOT NULL,
	`due_at` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL
);
