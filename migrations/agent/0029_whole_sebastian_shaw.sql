CREATE TABLE `secret_uses` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`by` text NOT NULL,
	`host` text NOT NULL,
	`cause` text NOT NULL,
	`times` integer DEFAULT 1 NOT NULL,
	`first_at` integer NOT NULL,
	`last_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `secret_uses_use` ON `secret_uses` (`name`,`kind`,`by`,`host`,`cause`);