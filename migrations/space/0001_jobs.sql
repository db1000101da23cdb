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
INSERT INTO `jobs` (`kind`, `key`, `due_at`, `attempts`)
	SELECT 'route', CAST(`seq` AS text), 0, `tries` FROM `decisions` WHERE `decision` IS NULL ORDER BY `seq`;--> statement-breakpoint
UPDATE OR REPLACE `timers` SET `name` = 'jobs' WHERE `name` = 'route';--> statement-breakpoint
ALTER TABLE `decisions` DROP COLUMN `tries`;