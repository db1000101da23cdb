CREATE TABLE `removed_subjects` (
	`hash` text PRIMARY KEY NOT NULL,
	`removed_at` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `entities` ADD `signed_out_at` integer;--> statement-breakpoint
CREATE INDEX `entities_external` ON `entities` (`external_id`) WHERE external_id is not null;--> statement-breakpoint
ALTER TABLE `workspace` ADD `auth` text;