CREATE TABLE `counters` (
	`series` text PRIMARY KEY NOT NULL,
	`value` real NOT NULL
);
--> statement-breakpoint
CREATE TABLE `gauges` (
	`family` text NOT NULL,
	`object` text NOT NULL,
	`value` integer NOT NULL,
	`at` integer NOT NULL,
	PRIMARY KEY(`family`, `object`)
);
--> statement-breakpoint
CREATE INDEX `gauges_at` ON `gauges` (`at`);