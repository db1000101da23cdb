CREATE TABLE `feed` (
	`part` text PRIMARY KEY NOT NULL,
	`hash` text NOT NULL,
	`value` text NOT NULL
);
--> statement-breakpoint
ALTER TABLE `runs` ADD `fed` integer;--> statement-breakpoint
CREATE INDEX `runs_own` ON `runs` (`ordinal`) WHERE fed = 0;