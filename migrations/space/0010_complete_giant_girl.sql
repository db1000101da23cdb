ALTER TABLE `log` ADD `changed_seq` integer;--> statement-breakpoint
ALTER TABLE `log` ADD `was` text;--> statement-breakpoint
CREATE INDEX `log_was` ON `log` (`seq`) WHERE was IS NOT NULL;