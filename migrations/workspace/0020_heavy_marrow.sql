ALTER TABLE `workspace` ADD `audit_webhook` text;--> statement-breakpoint
ALTER TABLE `workspace` ADD `audit_told` integer DEFAULT 0 NOT NULL;