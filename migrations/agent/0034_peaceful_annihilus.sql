ALTER TABLE `redactions` ADD `said_at` text;--> statement-breakpoint
ALTER TABLE `redactions` ADD `kept` text;