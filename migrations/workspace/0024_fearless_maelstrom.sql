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
--> statement-breakpoint
CREATE UNIQUE INDEX `endpoints_id` ON `endpoints` (`id`);--> statement-breakpoint
CREATE TABLE `feed` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` integer NOT NULL,
	`type` text NOT NULL,
	`subject` text NOT NULL
);
--> statement-breakpoint
ALTER TABLE `workspace` ADD `endpoints_version` integer DEFAULT 0 NOT NULL;