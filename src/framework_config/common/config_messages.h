/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said of a configuration, with the line of the file that is meant: warnings, errors,
 * and what is missing.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* How much of a name or a value a message shows. */
#define LH_CONFIG_SHOWN "%.60s"

/* What of the way another file says. */
typedef struct {
    const LhSettingsEntry *entry;
    unsigned part;     /* LhConfigParts */
    const char *field; /* of the scenario, that may say it */
    char *why;
} LhConfigLack;

/* A warning about @entry, or about the file as a whole (NULL). */
void lh_config_note(LhConfig *config, const LhSettingsEntry *entry, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* Sets @error at @entry; returns false. */
bool lh_config_fail(const LhConfig *config, const LhSettingsEntry *entry, GError **error,
                    const char *format, ...) G_GNUC_PRINTF(4, 5);

/* What is missing of a model, as a half-sentence: "its vocab-size is not said; add --vocab-size N".
 * It is an error if nothing else names a model. */
void lh_config_lacks_model(LhConfig *config, const LhSettingsEntry *entry, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* Likewise of another field of the scenario, which is an error where nothing says that either. */
void lh_config_lacks(LhConfig *config, const LhSettingsEntry *entry, const char *field,
                     const char *format, ...) G_GNUC_PRINTF(4, 5);

/* What is taken where nothing says it, which is noted then. */
void lh_config_unsaid(LhConfig *config, unsigned part, const char *field, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* "file:line:column", of an entry or of the whole file; caller frees. */
char *lh_config_place(const LhConfig *config, const LhSettingsEntry *entry);

/* Of LhConfigLack *. */
void lh_config_lack_free(gpointer data);

/* Sets @error: what @entry is, and what is @allowed; returns false. */
bool lh_config_refuse(const LhConfig *config, const LhSettingsEntry *entry, const char *allowed,
                      GError **error);
