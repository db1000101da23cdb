CREATE TABLE `erasure_visits` (
	`erasure_id` text NOT NULL,
	`target` text NOT NULL,
	`place` integer DEFAULT 0 NOT NULL,
	`up_to` integer,
	`rows` integer DEFAULT 0 NOT NULL,
	`objects` integer DEFAULT 0 NOT NULL,
	`is_done` integer DEFAULT false NOT NULL,
	PRIMARY KEY(`erasure_id`, `target`)
);
--> statement-breakpoint
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
);
--> statement-breakpoint
CREATE UNIQUE INDEX `erasures_id` ON `erasures` (`id`);