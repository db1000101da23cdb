UPDATE `blocks` SET `archived` = '{"type":"working","pinned":false}'
	WHERE `type` = 'archival' AND `archived` IS NULL AND `label` IN (
		SELECT `made`.`value` ->> '$.input.label' FROM `journal`, json_each(`journal`.`meta`, '$.calls') `made`
		WHERE `journal`.`kind` = 'assistant' AND instr(`journal`.`meta`, '"block_archive"')
			AND `made`.`value` ->> '$.toolName' = 'block_archive'
	);--> statement-breakpoint
CREATE TABLE `__kept_elsewhere` AS SELECT DISTINCT `ref` FROM `search_entries`
	WHERE `type` = 'consciousness' AND `role` = 'assistant' AND `part` = 0
		AND (`text` LIKE 'recall {%' OR `text` LIKE 'block_create {%' OR `text` LIKE 'block_edit {%');--> statement-breakpoint
DELETE FROM `search_vectors` WHERE EXISTS (SELECT 1 FROM `__kept_elsewhere`);--> statement-breakpoint
UPDATE `search_state` SET `embedded_up_to` = 0 WHERE EXISTS (SELECT 1 FROM `__kept_elsewhere`);--> statement-breakpoint
DELETE FROM `search_entries` WHERE `type` = 'consciousness' AND `ref` IN (SELECT `ref` FROM `__kept_elsewhere`);--> statement-breakpoint
UPDATE `search_state` SET `passages` = (SELECT count(*) FROM `search_entries`);--> statement-breakpoint
DROP TABLE `__kept_elsewhere`;
