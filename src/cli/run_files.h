/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sim and run write of one run beside their answer: its timeline, its trace and its
 * picture.
 */
#pragma once

#include "cli/command.h"
#include "report/draw/gantt.h"
#include "report/export/trace.h"

/* A member of the command's options. */
typedef struct {
    char *timeline, *trace, *figure; /* paths; NULL: not wanted */
    char *ranks_shown;               /* NULL: the first ones of the figure, all of the trace */
    char *time_window;               /* of figure and trace; NULL: all */
} LhRunFileOptions;

/* The rows of @member, an LhRunFileOptions of @Options. */
#define LH_OPTION_RUN_FILES(Options, member)                                                       \
    { .name = "figure",                                                                            \
      .category = LH_ABOUT_FILES,                                                                  \
      .type = LH_FIELD_STRING,                                                                     \
      .offset = offsetof(Options, member.figure),                                                  \
      .flags = LH_FIELD_WRITTEN | LH_COMMAND_FIGURE | LH_COMMAND_OF_ALL,                           \
      .placeholder = "FILE",                                                                       \
      .names = "files",                                                                            \
      .description = "Draw a Gantt chart of the run, into this .svg, .png or .pdf file." },        \
        { .name = "ranks-shown",                                                                   \
          .category = LH_ABOUT_FILES,                                                              \
          .type = LH_FIELD_STRING,                                                                 \
          .offset = offsetof(Options, member.ranks_shown),                                         \
          .flags = LH_COMMAND_SHOWN,                                                               \
          .placeholder = "LIST",                                                                   \
          .description = "Ranks that the figure and the trace show, such as 0-3,12; default 16 "   \
                         "of the figure, the first ones of each pipeline stage, which always "     \
                         "shows the last one to finish as well, and all of the trace." },          \
        { .name = "time-window",                                                                   \
          .category = LH_ABOUT_FILES,                                                              \
          .type = LH_FIELD_STRING,                                                                 \
          .offset = offsetof(Options, member.time_window),                                         \
          .flags = LH_COMMAND_SHOWN,                                                               \
          .placeholder = "FROM:TO",                                                                \
          .description =                                                                           \
              "Part of the time that the figure and the trace show, such as 2ms:3.5ms; "           \
              "default all." },                                                                    \
        { .name = "trace",                                                                         \
          .category = LH_ABOUT_FILES,                                                              \
          .type = LH_FIELD_STRING,                                                                 \
          .offset = offsetof(Options, member.trace),                                               \
          .flags = LH_FIELD_WRITTEN | LH_COMMAND_OF_ALL,                                           \
          .placeholder = "FILE",                                                                   \
          .names = "files",                                                                        \
          .description = "Also write the run for trace viewers: for Perfetto into this .pftrace "  \
                         "file, or for Chrome and others into this .json file." },                 \
    {                                                                                              \
        .name = "timeline", .category = LH_ABOUT_FILES, .type = LH_FIELD_STRING,                   \
        .offset = offsetof(Options, member.timeline),                                              \
        .flags = LH_FIELD_WRITTEN | LH_COMMAND_OF_ALL, .placeholder = "FILE", .names = "files",    \
        .description = "Also write this .csv or .json file, with one row for each op."             \
    }

/* The files of one run. */
typedef struct {
    const LhRunFileOptions *options;
    LhStamp stamp; /* set by the command */
    LhTimeWindow frame;
    LhTimeline *timeline; /* where the run's ops are to go; NULL: no file needs them */
    LhTrace *trace;       /* that is being written; NULL: none is wanted, or not yet begun */
} LhRunFiles;

/* What a run is called, as the row of a comparison is: its schedule, or the program of a file. */
const char *lh_run_name(const LhSetup *setup);

/*
 * Before the run: reads the options, for the ranks of @setup. @keep_all: no rank's ops can be
 * had later. LH_ERROR_USAGE. Ends with lh_run_files_clear() in either case.
 */
bool lh_run_files_init(LhRunFiles *files, const LhRunFileOptions *options, const LhSetup *setup,
                       bool keep_all, GError **error);
void lh_run_files_clear(LhRunFiles *files);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhRunFiles, lh_run_files_clear)

/*
 * Adds the rank that finished last to those of the figure, if there is one. Whether its ops are in
 * the timeline; if not, files->timeline is a new one, empty, for the run to be played again.
 */
bool lh_run_files_add_last(LhRunFiles *files, uint32_t last_rank);

/* Before a run whose ops go to the trace as they end: begins it, if one is wanted. Without this
 * call it is made of files->timeline, in the end. @program must stay until lh_run_files_clear(). */
bool lh_run_files_begin_trace(LhRunFiles *files, const LhSetup *setup, const LhProgram *program,
                              GError **error);

/* Writes what is wanted. @gantt lacks timeline and frame, which are those here. If one file cannot
 * be written, the others are still. */
bool lh_run_files_write(LhRunFiles *files, LhGantt *gantt, GError **error);
