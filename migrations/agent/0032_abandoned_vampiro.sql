DROP INDEX `runs_of_person`;--> statement-breakpoint
ALTER TABLE `runs` ADD `correction` text;