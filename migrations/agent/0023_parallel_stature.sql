ALTER TABLE `out_of_budget` ADD `budget` text DEFAULT 'tokens' NOT NULL;--> statement-breakpoint
ALTER TABLE `runs` ADD `person` text;--> statement-breakpoint
ALTER TABLE `runs` ADD `person_runs` integer;--> statement-breakpoint
CREATE INDEX `runs_of_person` ON `runs` (`person`,`person_runs`) WHERE person is not null;