/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that sim and run write about one run in addition to the result: timeline, trace and figure.
 */
#pragma once

#include "cli/command.h"
#include "report/draw/gantt.h"
#include "report/export/trace.h"

/* A member of the command's options. */
typedef struct {
    char *timeline, *trace, *figure; /* paths; NULL: not wanted */
    char *ranks_shown;               /* NULL: the first ranks in the figure, all in the trace */
    char *time_window;               /* part shown by figure and trace; NULL: all */
} LhRunFileOptions;

/* The options for @member, an LhRunFileOptions of @Options. */
#define LH_OPTION_RUN_FILES(Options, member)                                                       \
    { .name = "figure",                                                                            \
      .category = LH_ABOUT_FILES,                                                                  \
      .type = LH_FIELD_STRING,                                                                     \
      .offset = offsetof(Options, member.figure),                                                  \
      .flags = LH_FIELD_WRITTEN | LH_COMMAND_FIGURE | LH_COMMAND_OF_ALL,                           \
      .placeholder = "FILE",                                                                       \
      .names = "files",                                                                            \
      .description = "Draw a Gantt chart of the run to this .svg, .png or .pdf file." },           \
        { .name = "ranks-shown",                                                                   \
          .category = LH_ABOUT_FILES,                                                              \
          .type = LH_FIELD_STRING,                                                                 \
          .offset = offsetof(Options, member.ranks_shown),                                         \
          .flags = LH_COMMAND_SHOWN,                                                               \
          .placeholder = "LIST",                                                                   \
          .description = "Ranks in the figure and the trace, such as 0-3,12. Default: in the "     \
                         "trace all; in the figure 16, the first ones of each pipeline stage, "    \
                         "and always the last rank to finish." },                                  \
        { .name = "time-window",                                                                   \
          .category = LH_ABOUT_FILES,                                                              \
          .type = LH_FIELD_STRING,                                                                 \
          .offset = offsetof(Options, member.time_window),                                         \
          .flags = LH_COMMAND_SHOWN,                                                               \
          .placeholder = "FROM:TO",                                                                \
          .description =                                                                           \
              "Time window of the figure and the trace, such as 2ms:3.5ms; default all." },        \
        { .name = "trace",                                                                         \
          .category = LH_ABOUT_FILES,                                                              \
          .type = LH_FIELD_STRING,                                                                 \
          .offset = offsetof(Options, member.trace),                                               \
          .flags = LH_FIELD_WRITTEN | LH_COMMAND_OF_ALL,                                           \
          .placeholder = "FILE",                                                                   \
          .names = "files",                                                                        \
          .description = "Also write the run for trace viewers: Perfetto (.pftrace file) or "      \
                         "Chrome and others (.json file)." },                                      \
    {                                                                                              \
        .name = "timeline", .category = LH_ABOUT_FILES, .type = LH_FIELD_STRING,                   \
        .offset = offsetof(Options, member.timeline),                                              \
        .flags = LH_FIELD_WRITTEN | LH_COMMAND_OF_ALL, .placeholder = "FILE", .names = "files",    \
        .description = "Also write the timeline to this .csv or .json file, one row per op."       \
    }

/* The files of one run. */
typedef struct {
    const LhRunFileOptions *options;
    LhStamp stamp; /* set by the command */
    LhTimeWindow frame;
    LhTimeline *timeline; /* collects the run's ops; NULL: no file needs them */
    LhTrace *trace;       /* being written; NULL: not wanted, or not begun */
} LhRunFiles;

/* Name of a run, as in the row of a comparison: its schedule, or the program of a file. */
const char *lh_run_name(const LhSetup *setup);

/*
 * Reads the options before the run; @setup has the ranks. @keep_all: the run cannot be repeated, so
 * keep the ops of all ranks. LH_ERROR_USAGE. Call lh_run_files_clear() in either case.
 */
bool lh_run_files_init(LhRunFiles *files, const LhRunFileOptions *options, const LhSetup *setup,
                       bool keep_all, GError **error);
void lh_run_files_clear(LhRunFiles *files);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhRunFiles, lh_run_files_clear)

/*
 * Adds the rank that finished last to those of the figure, if there is one. Returns whether its ops
 * are in the timeline; if not, files->timeline is a new, empty one, and the run must be repeated.
 */
bool lh_run_files_add_last(LhRunFiles *files, uint32_t last_rank);

/* Begins the trace, if wanted, before a run whose ops are written to it as they end. Without this
 * call lh_run_files_write() makes it from files->timeline. @program must stay until
 * lh_run_files_clear(). */
bool lh_run_files_begin_trace(LhRunFiles *files, const LhSetup *setup, const LhProgram *program,
                              GError **error);

/* Writes the wanted files. Sets timeline and frame of @gantt. If one file cannot be written, the
 * others still are. */
bool lh_run_files_write(LhRunFiles *files, LhGantt *gantt, GError **error);
