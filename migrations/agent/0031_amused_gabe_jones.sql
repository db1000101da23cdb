ALTER TABLE `ledger` ADD `within` text DEFAULT '{}' NOT NULL;--> statement-breakpoint
-- Steps under way are settled in the accounts within the day's row.
UPDATE `ledger` SET `within` = (
  SELECT json_group_object(substr(`of`.`day`, 12), json_object('spent', `of`.`spent`, 'reserved', json(`of`.`reserved`)))
  FROM `ledger` AS `of`
  WHERE substr(`of`.`day`, 1, 11) = `ledger`.`day` || ' ' AND `of`.`day` NOT LIKE '% workspace' AND `of`.`reserved` <> '{}'
) WHERE length(`day`) = 10;--> statement-breakpoint
DELETE FROM `ledger` WHERE length(`day`) > 10 AND `day` NOT LIKE '% workspace' AND `reserved` <> '{}';
