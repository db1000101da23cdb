CREATE TABLE `registry` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`workspace` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `registry_id` ON `registry` (`id`);--> statement-breakpoint
ALTER TABLE `workspace` ADD `suspended` text;--> statement-breakpoint
ALTER TABLE `workspace` ADD `deleted_at` integer;