ALTER TABLE `space` ADD `retention_days` integer;--> statement-breakpoint
ALTER TABLE `space` ADD `workspace_retention_days` integer;