CREATE TABLE `notifications` (
	`cursor` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`space_id` text NOT NULL,
	`seq` integer NOT NULL,
	`notification` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `notifications_id_unique` ON `notifications` (`id`);--> statement-breakpoint
CREATE TABLE `spaces` (
	`id` text PRIMARY KEY NOT NULL,
	`standing` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `timers` (
	`name` text PRIMARY KEY NOT NULL,
	`due_at` integer NOT NULL,
	`failures` integer DEFAULT 0 NOT NULL
);
