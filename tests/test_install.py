"""What importing the package changes in OpenDP, once."""


def test_the_hook_is_installed_once():
    from opendp.mod import Transformation

    from opendp_concurrent.install import install

    before = Transformation.__rshift__
    install()
    install()
    assert Transformation.__rshift__ is before
    assert len(before._extensions) == 2
