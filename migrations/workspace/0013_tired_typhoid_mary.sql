CREATE TABLE `spaces_to_be` (
	`id` text PRIMARY KEY NOT NULL,
	`made_by` text,
	`until` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `workspace` ADD `limits` text DEFAULT '{}' NOT NULL;