CREATE TABLE `audit` (
	`position` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` integer NOT NULL,
	`action` text NOT NULL,
	`actor` text NOT NULL,
	`actor_as` text,
	`impersonated_by` text,
	`target` text NOT NULL,
	`detail` text,
	`once` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `audit_once` ON `audit` (`once`);--> statement-breakpoint
CREATE INDEX `audit_action` ON `audit` (`action`);--> statement-breakpoint
CREATE INDEX `audit_actor` ON `audit` (`actor`);--> statement-breakpoint
CREATE INDEX `audit_target` ON `audit` (`target`);