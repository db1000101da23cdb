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
INSERT INTO `jobs` (`kind`, `key`, `due_at`, `attempts`, `payload`)
	SELECT 'tell', `kind` || ' ' || `target` || ' ' || `subject`, `due_at`, `attempts`,
		json_object('about', `kind`, 'target', `target`, 'subject', `subject`)
	FROM `outbox`;--> statement-breakpoint
UPDATE OR REPLACE `timers` SET `name` = 'jobs' WHERE `name` = 'outbox';--> statement-breakpoint
DROP TABLE `outbox`;