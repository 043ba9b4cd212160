/* See the header. */
#include "runtime/device.h"

#define LOOK_US 20 /* between two looks at a mark */

bool
lh_device_finish(const LhRunDevice *device, LhDeviceState *state, LhDeviceStream stream,
                 bool (*stopping)(void *data), void *data, GError **error)
{
    LhDeviceMark mark = device->mark(state, stream, error);
    int passed = mark == NULL ? -1 : device->passed(state, mark, error);

    while (passed == 0 && (stopping == NULL || !stopping(data))) {
        g_usleep(LOOK_US);
        passed = device->passed(state, mark, error);
    }
    if (mark != NULL)
        device->unmark(state, mark);
    return passed == 1;
}
